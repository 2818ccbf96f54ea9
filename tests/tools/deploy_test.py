#!/usr/bin/env python3
"""The options that tools/deploy gives weir-serve are valid, and systemd accepts the unit.

Without systemd-analyze, the second part is skipped.
usage: deploy_test.py WEIR_SERVE UNIT DOCKERFILE
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

MOST_EXPOSED = 1.5  # of 10, as systemd-analyze counts
INSTALLED = "/usr/local/bin/weir-serve"


def unit_options(text):
    (options,) = re.findall(r'^Environment="WEIR_OPTIONS=(.*)"$', text, re.M)
    return options.split()


def image_options(text):
    (command,) = re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.M)
    program, name, *options = json.loads(command)
    assert (program, name) == ("weir-serve", "serve"), command
    return options


class Test:
    def __init__(self, weir, root):
        self.weir, self.root, self.faults = os.path.abspath(weir), root, 0

    def expect(self, holds, text):
        print("ok  " if holds else "BAD ", text)
        self.faults += not holds

    def check(self, options):
        done = subprocess.run([self.weir, "serve", "--check", *options], capture_output=True, text=True)
        self.expect(done.returncode == 0, "--check %s: %s" % (" ".join(options), done.stderr.strip()))

    def test_options(self, unit, dockerfile):
        models = os.path.join(self.root, "models")
        os.makedirs(os.path.join(models, "1"))
        config = os.path.join(self.root, "models.config")
        with open(config, "w") as f:
            f.write('model_config_list { config { name: "m" base_path: "%s" model_platform: "tensorflow" } }' % models)
        options = [config if o == "/etc/weir/models.config" else o for o in unit_options(unit)]
        self.expect(config in options, "the unit has a configuration of models")
        self.check(options)
        self.check(image_options(dockerfile) + ["--model", "m=" + models])

    def test_image(self, dockerfile):
        self.expect(re.search(r"^USER 65534", dockerfile, re.M) is not None, "the image runs as nobody")
        (pipeline,) = re.findall(r"^RUN (ldd .*\\\n.*) > /opt/weir/packages$", dockerfile, re.M)
        pipeline = pipeline.replace("\\\n", " ").replace("/opt/weir/bin/weir-serve", self.weir)
        packages = subprocess.run(pipeline, shell=True, capture_output=True, text=True).stdout.split()
        self.expect("libstdc++6" in packages and len(packages) < 20, "its packages: %s" % " ".join(packages))

    def test_unit(self, unit):
        if shutil.which("systemd-analyze") is None:
            print("SKIPPED: no systemd-analyze")
            return
        path = os.path.join(self.root, "weir-serve.service")
        with open(path, "w") as f:
            f.write(unit.replace(INSTALLED, self.weir))
        done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
        self.expect(done.returncode == 0 and not done.stderr, "systemd-analyze verify: " + done.stderr.strip())
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", path],
                              capture_output=True, text=True)
        level = float(re.search(r"exposure level for .*: ([\d.]+)", done.stdout)[1])
        self.expect(level <= MOST_EXPOSED, "systemd-analyze security: exposure level %.1f" % level)


def main():
    weir, unit, dockerfile = sys.argv[1:]
    with open(unit) as f, open(dockerfile) as g:
        unit, dockerfile = f.read(), g.read()
    with tempfile.TemporaryDirectory() as root:
        test = Test(weir, root)
        test.test_options(unit, dockerfile)
        test.test_image(dockerfile)
        test.test_unit(unit)
    sys.exit(1 if test.faults else 0)


if __name__ == "__main__":
    main()
