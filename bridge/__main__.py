"""``python -m bridge`` is the command line."""

from bridge.frontends.cli import main

if __name__ == "__main__":
    main()
