# Sourced by the entry points of the MySQL and MariaDB images for a new database; these
# define docker_process_sql.
. /keylag/fill.sh

KEYLAG_ACCOUNTS_HOST=%
KEYLAG_DATABASE_PASSWORD=$(cat /secrets/database)
KEYLAG_PROXYSQL_PASSWORD=$(cat /secrets/proxysql)
KEYLAG_EXPORTERS_PASSWORD=$(cat /secrets/exporters)
fill /keylag/accounts.sql | docker_process_sql
