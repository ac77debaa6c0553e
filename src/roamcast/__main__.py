"""`python -m roamcast` is `roamcast`."""

from roamcast.cli import main

if __name__ == "__main__":
    main()
