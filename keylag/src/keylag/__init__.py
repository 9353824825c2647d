"""Keylag: where did the time of this Keystone token call go?"""
