"""Command line: `python3 -m hack.imagebuild build [NAME...]`, `reference NAME`, and `run NAME -- COMMAND...`."""

import argparse
import os
import sys
from pathlib import Path

from hack.imagebuild import engine, inputs, store


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="python3 -m hack.imagebuild", description="Container images of triton-operator.")
    commands = top.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build images and archives; print NAME REFERENCE ARCHIVE lines")
    build.add_argument("names", nargs="*", metavar="NAME", help="an image; all on Debian's if none is named")
    build.add_argument("--json", action="store_true", help="print a JSON list instead of lines")
    reference = commands.add_parser("reference", help="print what an image of this tree is called, built or not")
    reference.add_argument("name", metavar="NAME")
    run = commands.add_parser("run", help="run a command inside an image, as the caller's user")
    run.add_argument("name", metavar="NAME")
    run.add_argument("--mount", action="append", default=[], metavar="HOST:CTR[:ro]")
    run.add_argument("--env", action="append", default=[], metavar="KEY=VALUE")
    run.add_argument("--user", default=f"{os.getuid()}:{os.getgid()}", metavar="UID:GID")
    run.add_argument("argv", nargs="+", metavar="COMMAND", help="after --: the command and its arguments")
    return top


def main(argv: list[str]) -> int:
    """Run one command and return the exit status."""
    options = parser().parse_args(argv)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "triton-operator", "images")
    try:
        images = store.Store(engine.find(cache), cache)
        if options.command == "reference":
            print(images.image(options.name).reference)
            return 0
        if options.command == "run":
            image = images.ensure(options.name)
            environment = dict(pair.split("=", 1) for pair in options.env)
            return images.run(
                engine.Run(image.reference, tuple(options.argv), tuple(options.mount), environment, options.user)
            )
        built = [images.build(name) for name in options.names or inputs.names()]
    except (FileNotFoundError, store.BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    print(store.as_json(built) if options.json else "\n".join(f"{b.name} {b.reference} {b.archive}" for b in built))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
