"""Where auth_token keeps validated tokens, by its options."""

import pytest

from keylag_otel.auth_token.configuration import _configuration_of

OPTIONS = {"memcache_security_strategy": "None", "token_cache_time": 300}


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({}, "process"),
        ({"memcached_servers": ["127.0.0.1:11211"]}, "memcached"),
        ({"cache": "swift.cache"}, "environment"),
        ({"token_cache_time": -1}, "none"),
        ({"cache": "swift.cache", "token_cache_time": "-1"}, "none"),
    ],
)
def test_the_place_of_validated_tokens_is_named(options, place) -> None:
    found = _configuration_of({**OPTIONS, **options}.get)

    assert found.cache == place
