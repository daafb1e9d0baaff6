"""``python -m margrave`` is ``margrave``."""

from margrave.cli.main import main

if __name__ == "__main__":
    main()
