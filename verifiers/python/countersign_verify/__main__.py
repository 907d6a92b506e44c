import sys

from .lines import run

if "--lines" in sys.argv[1:]:
    run()
