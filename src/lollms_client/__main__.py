"""`python -m lollms_client` is the command line `lollms`."""

import sys

from .cli import main

sys.exit(main())
