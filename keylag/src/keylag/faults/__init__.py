"""Faults: causes of slow token calls, planted in a stack by their real mechanism.

    with planted(stack, FAULTS["C4"], strength=5):
        ...

A fault is a list of changes.  Each change is in the stack's journal before it is made,
and the journal is all that is needed to take it back, also after a crash.
"""
