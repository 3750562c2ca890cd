"""`python -m routepool`: the command line."""

from routepool.cli import main

if __name__ == "__main__":
    main()
