#!/usr/bin/env python3
"""Every public header says what it is for, and every public declaration has a comment.

    public_comments_test.py                 lists the declarations without one
    public_comments_test.py core/tensor/tensor.h   of one header

A comment documents the declaration below or beside it, and more declarations that follow without a
blank line, another comment or a body of several lines: one comment documents a group, or overloads.
A heading, "// ---- regularizers: ...", may be followed by a blank line. The comment over a struct
and the one that says what the header is for document the fields that they name: `axis`, or all
`..._initializer`.

No comment is needed for enumerators, overrides, comparisons, friends, forward declarations,
specializations, constructors without arguments, copies, moves, destructors, what is defaulted or
deleted, the members of containers and pointers in the standard library (begin, size, get), and
namespaces `internal`.
"""

import re
import sys

import public_headers

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<word>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|\w+|::|->|<=>|[=!<>]=|&&|[^\s])
""", re.MULTILINE | re.DOTALL | re.VERBOSE)
CLOSING = {"(": ")", "[": "]", "{": "}"}
CONTAINERS = ("begin", "end", "size", "empty", "find", "get")
ACCESS = ("public", "protected", "private")
NEEDS_NONE = re.compile(
    r"^(friend|static_assert|extern template|using namespace)\b|^(virtual |constexpr )?~"
    r"|= (default|delete)$|\boverride$|\bfinal$|\boperator (==|!=|<=>|->|\*|bool)"
    r"|^using (value_type|iterator|const_iterator)\b")


class Declaration:
    """`words` lie on the lines first..head; a body or the members may follow up to `last`."""

    def __init__(self, words, first, head, last):
        self.words, self.first, self.head, self.last = words, first, head, last

    def __str__(self):
        text = re.sub(r" ?(::|->|[(),;<>&*.\[\]~]) ?", r"\1", " ".join(self.words))
        return re.sub(r"([,>&*])(?=\w)", r"\1 ", text)

    def name(self):
        """The word before the first parenthesis: the same for overloads."""
        words = without_template(self.words)
        return words[words.index("(") - 1 if "(" in words else -1]

    def continues(self, previous):
        """Whether it is in the group of the one before: no blank line, and no body between."""
        return previous.last == self.first - 1 and (
            previous.last == previous.head or previous.name() == self.name())

    def fields(self):
        """The names of the fields that it declares; none for other declarations."""
        head = self.words[:self.words.index("=")] if "=" in self.words else self.words
        if "(" in head or self.words[0] in ("using", "class", "struct", "enum"):
            return []
        names, depth, in_value = [""], 0, False
        for word in self.words:
            depth += {"<": 1, ">": -1, "{": 1, "}": -1, "(": 1, ")": -1}.get(word, 0)
            if word == "," and depth == 0:
                names.append("")
                in_value = False
            in_value = in_value or word == "="
            if depth == 0 and not in_value and word.isidentifier():
                names[-1] = word
        return names

    def needs_comment(self, owner):
        """`owner`: the class that it is a member of, or None."""
        text = " ".join(without_template(self.words))
        if self.words[:3] == ["template", "<", ">"] or re.match(r"[^(]* :: \w+ \(", text):
            return False  # a specialization; a definition outside its class
        special = r"(explicit |constexpr )*%s \( ((const )?%s &+ \w* ?)?\)" % (owner, owner)
        if re.match(special, text) or re.search(r"operator = \( (const )?%s\b" % owner, text):
            return False
        return self.name() not in CONTAINERS and not NEEDS_NONE.search(text)


def without_template(words):
    """The words after `template <...>`."""
    while words[:1] == ["template"]:
        depths = 0
        for at, word in enumerate(words):
            depths += {"<": 1, ">": -1}.get(word, 0)
            if word == ">" and depths == 0:
                break
        words = words[at + 1:]
    return words


class Scope:
    """The public declarations of a class, or of a namespace. `fields`: comments that name fields."""

    def __init__(self, owner, fields):
        self.owner, self.fields, self.declarations = owner, fields, []

    def names_field(self, name):
        endings = re.findall(r"`\.\.\.(_\w+)`", self.fields)
        return "`%s`" % name in self.fields or name.endswith(tuple(endings))


class Header:
    """The public declarations of a header, by scope, and its comments."""

    def __init__(self, text):
        self.words, self.above, self.beside, self.at = [], {}, set(), 0
        macros = []
        for match in TOKEN.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            end = line + match[0].count("\n")
            if match["comment"]:
                before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
                if before.strip():
                    self.beside.add(line)
                else:
                    self.above[end] = self.above.pop(line - 1, "") + match[0] + "\n"
            elif match["directive"]:
                if re.match(r"\s*#\s*define \w+[^\W_]\(", match[0]):
                    macros.append(Declaration(match[0].split("\\\n")[0].split(), line, line, end))
            else:
                self.words.append((match[0], line))
        self.purpose = self.find_purpose()
        self.scopes = [Scope(None, "")]
        self.scopes[0].declarations = macros
        self.take_scope(Scope(None, ""), True)

    def find_purpose(self):
        """The comments before the first declaration, which may be of that; "" if none."""
        code = " ".join(word for word, _ in self.words)
        skipped = re.match(r"(namespace [\w: ]+ \{ |(class|struct) \w+ ; |\} )*", code)[0].count(" ")
        first = self.words[skipped][1] if skipped < len(self.words) else sys.maxsize
        return "".join(self.above[line] for line in sorted(self.above) if line < first)

    def peek(self, ahead=0):
        return self.words[self.at + ahead][0] if self.at + ahead < len(self.words) else ""

    def line(self):
        return self.words[self.at - 1][1]

    def take(self):
        self.at += 1
        return self.words[self.at - 1][0]

    def take_brackets(self):
        """Takes a bracket, what it encloses, and the closing one."""
        words = [self.take()]
        while self.peek() and self.peek() != CLOSING[words[0]]:
            words += self.take_brackets() if self.peek() in CLOSING else [self.take()]
        return words + [self.take()]

    def take_scope(self, scope, public, access=True):
        """Takes the declarations up to the closing brace of a namespace or class."""
        self.scopes.append(scope)
        while self.peek() not in ("", "}"):
            if self.peek() in ACCESS and self.peek(1) == ":":
                access = self.take() != "private"
                self.take()
            else:
                self.take_declaration(public and access, scope.declarations)

    def take_declaration(self, public, declarations):
        self.at += 1
        first = head = self.line()
        self.at -= 1
        words, kind, has_body = [], "", False
        while self.peek() not in ("", ";"):
            if self.peek() != "{":
                words += self.take_brackets() if self.peek() in CLOSING else [self.take()]
                head = self.line()
                kind = kind or next((w for w in without_template(words) if w != "inline"), "")
                continue
            has_body = True
            plain = without_template(words)
            if kind in ("namespace", "class", "struct", "union") and "(" not in plain:
                name = plain[1:(plain + [":"]).index(":")]
                self.take()
                if kind == "namespace":
                    self.take_scope(Scope(None, ""), public and "internal" not in name)
                    self.take()
                    return
                fields = self.purpose + self.above.get(first - 1, "")
                self.take_scope(Scope(name[0] if name else None, fields), public, kind != "class")
                self.take()
                continue
            self.take_brackets()
            if self.peek() not in (",", "{", ";") and kind != "enum":
                break  # after the body of a function
        if self.peek() == ";":
            self.take()
        is_forward = kind in ("class", "struct", "union", "enum") and not has_body
        if public and words and not is_forward:
            declarations.append(Declaration(words, first, head, self.line()))

    def opens_group(self, line):
        """Whether a comment ends above this line, or a heading and a blank line."""
        return line - 1 in self.above or self.above.get(line - 2, "").startswith("// ---- ")

    def undocumented(self):
        """Returns (line, text) of each declaration that needs a comment and has none."""
        found = [] if self.purpose else [(1, "say first what the header is for")]
        for scope in self.scopes:
            previous = None  # the declaration before, if it is in a group
            for d in scope.declarations:
                in_group = self.opens_group(d.first) or previous and d.continues(previous)
                beside = any(i in self.beside for i in range(d.first, d.head + 1))
                fields = d.fields()
                named = fields and all(scope.names_field(f) for f in fields)
                if d.needs_comment(scope.owner) and not (in_group or beside or named):
                    found.append((d.first, str(d)))
                previous = d if in_group else None
        return sorted(found)


SAMPLE = """
// What the header is for; all options have a `name`.
namespace weir {
struct Forward;
struct Bare {
  int a = 0;  // commented
  int b = F(1, 2);
  std::string name;
 private:
  int c;
};
// A group: two functions.
void One(int x);
template <class T>
void Two(const std::map<int, T>& x);

// Overloads.
inline void Three(int x) {
  One(x);
}
inline void Three(long x) {
  One(x);
}
inline void Four() { One(1); }
namespace internal {
void Five();
}
// ---- heading

class Six {
  Six();
  void Private();
 public:
  explicit Six(int x);
  ~Six();
  bool operator==(const Six&) const = default;
};
}
"""
MISSING = ["struct Bare", "int b = F(1, 2)", "inline void Four()", "explicit Six(int x)"]


def main():
    found = [what for _, what in Header(SAMPLE).undocumented()]
    if found != MISSING:
        sys.exit("the scanner finds %s instead of %s" % (found, MISSING))
    names = sys.argv[1:] or sorted(set(public_headers.installed()) - public_headers.DETAILS)
    faults = ["%s:%d: %s" % (name, line, what) for name in names
              for line, what in Header(public_headers.read(name)).undocumented()]
    print("\n".join(faults + ["%d headers, %d without a comment" % (len(names), len(faults))]))
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main())
