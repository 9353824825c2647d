"""Why authentication is slow: rules over measurements, ranked by what they cost.

`measurements` names what is asked of Prometheus, `facts` holds the answers, `rules` has
one file for each cause, and `ranking` puts the causes in order.
"""
