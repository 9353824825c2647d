"""Tools for developers of Keylag: long-running checks and page generators."""
