"""What holds for all tests: Ctrl-C interrupts, however they were started."""

import signal

# A shell starts what is in its background with Ctrl-C ignored, and so would be
# the tests that send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
