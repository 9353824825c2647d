"""What is watched in a service that asks Keystone: keystonemiddleware.auth_token."""
