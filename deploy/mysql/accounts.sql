-- Accounts of Keystone, of ProxySQL (which may only connect) and of the exporters (which
-- may read one table and the ages of transactions). The caller fills in host and
-- passwords. Each statement is on one line, as init_file requires.
CREATE DATABASE IF NOT EXISTS keystone;
CREATE USER IF NOT EXISTS 'keystone'@'${KEYLAG_ACCOUNTS_HOST}' IDENTIFIED BY '${KEYLAG_DATABASE_PASSWORD}';
GRANT ALL ON keystone.* TO 'keystone'@'${KEYLAG_ACCOUNTS_HOST}';
CREATE USER IF NOT EXISTS 'proxysql'@'${KEYLAG_ACCOUNTS_HOST}' IDENTIFIED BY '${KEYLAG_PROXYSQL_PASSWORD}';
CREATE USER IF NOT EXISTS 'keylag'@'${KEYLAG_ACCOUNTS_HOST}' IDENTIFIED BY '${KEYLAG_EXPORTERS_PASSWORD}' WITH MAX_USER_CONNECTIONS 4;
-- MySQL grants privileges on a missing table only together with CREATE.
GRANT CREATE, SELECT ON keystone.revocation_event TO 'keylag'@'${KEYLAG_ACCOUNTS_HOST}';
REVOKE CREATE ON keystone.revocation_event FROM 'keylag'@'${KEYLAG_ACCOUNTS_HOST}';
GRANT PROCESS ON *.* TO 'keylag'@'${KEYLAG_ACCOUNTS_HOST}';
