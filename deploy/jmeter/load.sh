#!/bin/sh
# Run a load plan against the Keystone container: load.sh PLAN [OPTION...]
. /secrets/openrc
case $1 in
  service-call) set -- "$@" --set target_host=service ;;
esac
keylag load --url http://keystone:5000/v3 --users /cloud/users.csv "$@"
code=$?
# Give the results to the owner of the checkout.
chown -R --reference=jmeter-plans out
exit $code
