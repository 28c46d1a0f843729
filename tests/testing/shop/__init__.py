"""A made-up application with a suite of its own, which the tests of the plugin record and deny."""
