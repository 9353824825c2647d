-- The accounts of Keystone, of ProxySQL, which may connect and no more, and of the
-- exporters, which may read one table.  Host and passwords are filled in by who runs
-- this; each statement is one line, as an init file wants it.
CREATE DATABASE IF NOT EXISTS keystone;
CREATE USER IF NOT EXISTS 'keystone'@'${KEYLAG_ACCOUNTS_HOST}' IDENTIFIED BY '${KEYLAG_DATABASE_PASSWORD}';
GRANT ALL ON keystone.* TO 'keystone'@'${KEYLAG_ACCOUNTS_HOST}';
CREATE USER IF NOT EXISTS 'proxysql'@'${KEYLAG_ACCOUNTS_HOST}' IDENTIFIED BY '${KEYLAG_PROXYSQL_PASSWORD}';
CREATE USER IF NOT EXISTS 'keylag'@'${KEYLAG_ACCOUNTS_HOST}' IDENTIFIED BY '${KEYLAG_EXPORTERS_PASSWORD}' WITH MAX_USER_CONNECTIONS 2;
-- To grant rights on a table that is not there yet takes the right to create it.
GRANT CREATE, SELECT ON keystone.revocation_event TO 'keylag'@'${KEYLAG_ACCOUNTS_HOST}';
REVOKE CREATE ON keystone.revocation_event FROM 'keylag'@'${KEYLAG_ACCOUNTS_HOST}';
