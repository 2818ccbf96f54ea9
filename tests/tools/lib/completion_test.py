#!/usr/bin/env python3
"""Completes command lines of weir in bash, zsh and fish, and checks the manual page with mandoc and
man. A shell or checker that is not installed is skipped, and named.

    completion_test.py WEIR
"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

WEIR = ""


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class Terminal:
    """A shell on a terminal, to which keys are sent."""

    def __init__(self, command, folder, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def read(self, until, seconds=20):
        """Returns what the shell writes until the pattern appears."""
        text, end = "", time.monotonic() + seconds
        while not re.search(until, text):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"{until!r} does not appear in {text!r}")
            text += os.read(self.fd, 65536).decode(errors="replace")
            text = re.sub(r"\0|\x1b\[[0-9;?]*[a-zA-Z]", "", text)  # padding, and styles of the line
        return text

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def close(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.mkdir(f"{self.folder}/bin")
        os.symlink(WEIR, f"{self.folder}/bin/weir")
        serve = os.path.join(os.path.dirname(WEIR), "weir-serve")
        if os.path.exists(serve):
            os.symlink(serve, f"{self.folder}/bin/weir-serve")
        os.mkdir(f"{self.folder}/exported")
        open(f"{self.folder}/model.meta", "w").close()
        self.environment = dict(
            os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}", HOME=self.folder,
            TERM="ansi", LC_ALL="C.UTF-8", PS1="READY> ", ZDOTDIR=self.folder)

    def script(self, shell):
        return subprocess.run([WEIR, "completion", shell], check=True, capture_output=True,
                              text=True).stdout

    def shell(self, command, start):
        terminal = Terminal(command, self.folder, self.environment)
        self.addCleanup(terminal.close)
        terminal.send(start + "; PS1='READY> '\n")
        terminal.read("READY> .*READY> |\nREADY> ")
        return terminal

    def check(self, terminal):
        """Completes words one after the other, each ended by a tab, on the terminal of a shell."""
        for typed, expected in [
            ("gra\t", "graph "),
            ("graph sh\t", "graph show "),
            ("graph show --na\t", "graph show --name "),
            ("graph show mod\t", "graph show model.meta "),
            ("run --color al\t", "run --color always "),
            ("run --color=al\t", "run --color=always "),
            ("run --dump-plan exp\t", "run --dump-plan exported"),
            ("--wid\t", "--wide "),
            ("help graph ex\t", "help graph export "),
            ("completion fi\t", "completion fish "),
        ]:
            terminal.send("weir " + typed)
            terminal.read(re.escape("weir " + expected))
            terminal.send("\x15\n")
            terminal.read("READY> ")

    @needs("bash")
    def test_bash(self):
        with open(f"{self.folder}/completion", "w", encoding="utf-8") as file:
            file.write(self.script("bash"))
        terminal = self.shell(["bash", "--norc", "--noprofile", "-i"], "source ./completion")
        self.check(terminal)
        terminal.send("weir ckpt \t\t")
        listed = terminal.read("verify")
        for command in ["convert", "ls", "repair", "show"]:
            self.assertRegex(listed, rf"\b{command}\b")

    @needs("zsh")
    def test_zsh(self):
        with open(f"{self.folder}/completion", "w", encoding="utf-8") as file:
            file.write(self.script("zsh"))
        terminal = self.shell(["zsh", "-f", "-i"],
                              "autoload -Uz compinit; compinit -u; source ./completion")
        self.check(terminal)

    @needs("fish")
    def test_fish(self):
        def candidates(line):
            run = subprocess.run(
                ["fish", "--no-config", "-c",
                 f"{self.script('fish')}\ncomplete -C '{line}'"],
                check=True, capture_output=True, text=True, cwd=self.folder, env=self.environment)
            return [entry.split("\t")[0] for entry in run.stdout.splitlines()]

        self.assertEqual(candidates("weir gra"), ["graph"])
        self.assertIn("verify", candidates("weir ckpt "))
        self.assertEqual(candidates("weir run --color al"), ["always"])
        self.assertEqual(candidates("weir run --color=al"), ["--color=always"])
        self.assertEqual(candidates("weir graph show mod"), ["model.meta"])
        self.assertEqual(candidates("weir run --dump-plan "), ["bin/", "exported/"])

    def test_options_of_the_server(self):
        serve = os.path.join(os.path.dirname(WEIR), "weir-serve")
        if not os.path.exists(serve):
            self.skipTest("weir-serve is not built")
        answer = subprocess.run([WEIR, "__complete", "serve", "--po"], check=True,
                                capture_output=True, text=True).stdout
        self.assertIn("\n--port\t", answer)


class Manual(unittest.TestCase):
    def setUp(self):
        self.page = subprocess.run([WEIR, "help", "--man"], check=True, capture_output=True,
                                   text=True).stdout

    def test_names_every_command_and_option(self):
        for text in ["weir ckpt convert", r"\-\-dump\-plan", r"\-\-wide", "NO_COLOR"]:
            self.assertIn(text, self.page)

    @needs("mandoc")
    def test_mandoc_finds_no_mistake(self):
        run = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=self.page,
                             capture_output=True, text=True)
        # The page has no date: the same sources give the same page.
        findings = [line for line in run.stdout.splitlines() if "missing date" not in line]
        self.assertEqual(findings, [])

    @needs("man")
    def test_man_shows_it(self):
        with tempfile.NamedTemporaryFile("w", suffix=".1", encoding="utf-8") as file:
            file.write(self.page)
            file.flush()
            environment = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80")
            run = subprocess.run(["man", "--warnings", "-l", file.name], check=True,
                                 capture_output=True, text=True, env=environment)
        self.assertEqual(run.stderr, "")
        self.assertRegex(run.stdout, r"WEIR\(1\)")
        self.assertRegex(run.stdout, r"--color WHEN")
        self.assertLessEqual(max(map(len, run.stdout.splitlines())), 80)


if __name__ == "__main__":
    WEIR = os.path.realpath(sys.argv.pop(1))
    unittest.main()
