#!/bin/sh
# What has to be done before anything serves; doing it again changes nothing.
set -eu
ladder admin migrate
ladder admin create-node worker --identity /run/secrets/worker_identity --lanes cpu
# A Redis that lost its users gets them back.
ladder admin sync-broker-acl
