"""What developers of Keylag run: checks that take long, and generators of pages."""
