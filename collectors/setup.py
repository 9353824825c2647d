"""The C part is optional: without a compiler, ``keylag_otel.pure`` does its work."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension("keylag_otel._watch", ["src/keylag_otel/_watch.c"], optional=True)
    ]
)
