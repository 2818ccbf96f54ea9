"""Random search for valid calls whose results differ in TensorFlow and Weir, or that only one of the two rejects.

    python3 valid_arguments.py RUN_MARKED_GRAPHS [--calls 50] [--seed 1] [--ops RE] [--kinds dies,...]

op_calls.py builds the calls: random values, shapes, types and attributes that TensorFlow's documentation allows. Differences are
printed and explained as those of invalid_arguments.py are, with its kinds and tolerances.
"""

import random
import sys

from invalid_arguments import op_calls, parser, search


def main():
    arguments = parser()
    arguments.set_defaults(calls=50)
    args = arguments.parse_args()
    table = op_calls.all_calls()

    def graph_of(op, seed):
        function = random.Random('%s %d' % (op, seed)).choice(table[op])
        return op_calls.build(op, function, seed), 0
    return 1 if search(args, table, graph_of) else 0


if __name__ == '__main__':
    sys.exit(main())
