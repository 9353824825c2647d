# Read by the entry point of MySQL's and MariaDB's images when the database is new; they
# give docker_process_sql.
. /keylag/fill.sh

KEYLAG_ACCOUNTS_HOST=%
KEYLAG_DATABASE_PASSWORD=$(cat /secrets/database)
KEYLAG_PROXYSQL_PASSWORD=$(cat /secrets/proxysql)
KEYLAG_EXPORTERS_PASSWORD=$(cat /secrets/exporters)
fill /keylag/accounts.sql | docker_process_sql
