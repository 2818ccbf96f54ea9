#!/usr/bin/env bash
# examples/label_image classifies the color of a picture with a graph of three nodes, draws the picture, and reports errors.
set -eu
label_image=$1
cd "${TEST_TMPDIR:-$(mktemp -d)}"
case $label_image in /*) ;; *) label_image=$OLDPWD/$label_image ;; esac

cat >graph.pbtxt <<'GRAPH'
node { name: "picture" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 4 } dim { size: 4 } dim { size: 3 } } } } }
node { name: "axes" op: "Const"
  attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 2 } } } }
node { name: "mean" op: "Mean" input: "picture" input: "axes"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tidx" value { type: DT_INT32 } }
  attr { key: "keep_dims" value { b: false } } }
node { name: "scores" op: "Softmax" input: "mean" attr { key: "T" value { type: DT_FLOAT } } }
GRAPH
printf 'red\ngreen\nblue\n' >labels.txt
# A BMP of 2 x 2 pixels: rows of BGR values and two bytes of padding.
{
  printf 'BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\x18\0'
  printf '\0%.0s' {1..24}
  printf '\0\0\xff\0\0\xff\0\0%.0s' 1 2
} >red.bmp

text=$("$label_image" --graph graph.pbtxt --labels labels.txt --top 2 red.bmp)
echo "$text"
[ "$text" = "  0.7870  red
  0.1065  green" ] || { echo "not what was expected"; exit 1; }

text=$("$label_image" --graph graph.pbtxt --thumbnail always red.bmp)
[ "$(grep -c $'\033\[38;2;255;0;0m\033\[48;2;255;0;0m▀' <<<"$text")" = 24 ] || { echo "no thumbnail: $text"; exit 1; }
grep -q '0.7870  0' <<<"$text"

if text=$("$label_image" --graph graph.pbtxt labels.txt 2>&1); then
  echo "a text is no picture, but: $text"
  exit 1
fi
grep -q 'label_image: INVALID_ARGUMENT: .*Unknown image file format' <<<"$text"
