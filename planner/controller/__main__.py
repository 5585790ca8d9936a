"""``python -m planner.controller``."""

from planner.controller.main import main

if __name__ == "__main__":
    main()
