"""Command lines of kafka-acls.sh, which run one after the other on a cluster without ACLs.

BROKER, PLAIN and NOBODY stand for addresses, ADMIN, ALICE, GUESSED and MISSING for files of
--command-config, @ for the option with the address that needs no login.
"""

LINES = """
@ --list
@ --add --allow-principal User:Bob --allow-principal User:Alice \
    --allow-host 198.51.100.0 --allow-host 198.51.100.1 --operation Read --operation Write --topic t
@ --add --allow-principal User:Bob --operation Read --operation All --topic t
@ --add --allow-principal User:Bob --operation Read --operation All --topic t
--bootstrap-server=BROKER --add --allow-principal=User:* --allow-host=* \
    --deny-principal=User:BadBob --deny-host=198.51.100.3 --operation=Read --topic=t
@ --add --deny-principal User:Carol --topic *
@ --add --allow-principal User:Peter --producer --topic * --topic s
@ --add --allow-principal User:Jane --producer --topic Test- \
    --resource-pattern-type prefixed
@ --add --allow-principal User:Carol --operation AlterConfigs --cluster
@ --add --allow-principal User:Carol --operation ALTERCONFIGS --cluster
@ --add --allow-principal User:Carol --operation clusteraction --cluster
@ --add --allow-principal User:Carol --operation Read --group g --group *
@ --add --allow-principal User:Carol --operation Describe \
    --delegation-token token-1
@ --add --allow-principal User:Carol --operation CreateTokens \
    --user-principal User:Dave
@ --add --allow-principal User:Carol --operation TwoPhaseCommit \
    --transactional-id tx --resource-pattern-type PREFIXED
@ --add --allow-principal User:Alice --consumer --topic t --group g
@ --add --allow-principal User:Alice --producer --consumer --topic t \
    --group g --transactional-id tx
@ --add --allow-principal User:Dave --producer --idempotent --topic t \
    --transactional-id Tx-1
@ --add --allow-principal User:Dave --producer --idempotent --topic p- \
    --resource-pattern-type prefixed
@ --add --allow-principal User:Erin --producer --cluster --topic u
@ --add --allow-principal User:Erin --producer --group g --topic u
@ --add --allow-principal " User:Erin " --topic " blanks " --allow-host " h "
@ --add --allow-principal User:Erin --transactional-id " blanks "
@ --add --allow-principal User:Erin --allow-host "" --topic u
@ --add --allow-principal User: --topic u
@ --add --allow-principal Group:g --topic u
@ --add --allow-principal :a:b --topic u
@ --add --allow-principal User:CN=a,O=b --topic u
@ --add --allow-principal User:Jürgen --topic u
@ --add --allow-principal User:Erin --topic ""
@ --add --allow-principal User:Erin --topic u --operation " read "
@ -add -allow-principal User:Frank -topic=w
@ --add=yes --allow-principal User:Frank --topic= w2
@ --add --allow-principal User:Frank --topic --list
@ --add --allow-principal User:Frank passed-over --topic w3 over
@ --add --allow-principal User:Frank --topic w4 -- --topic w5 --list
@ --add --allow-principal User:Frank --topic w6 --force
@ --add --add --allow-principal User:Frank --topic w7 --topic w7
--bootstrap-server BROKER,BROKER --add --allow-principal User:Frank --topic w8
--bootstrap-server NOBODY,BROKER --add --allow-principal User:Frank --topic w9
--bootstrap-server PLAINTEXT://BROKER --list --topic w9
@ --list
@ --list --topic t
@ --list --topic * --topic s
@ --list --topic Test-topic --resource-pattern-type match
@ --list --topic Test- --resource-pattern-type any
@ --list --topic Test- --resource-pattern-type Prefixed
@ --list --topic Test-
@ --list --group g --cluster
@ --list --cluster --resource-pattern-type any
@ --list --user-principal User:Dave --delegation-token token-1
@ --list --transactional-id tx --resource-pattern-type match
@ --list --principal User:Bob
@ --list --principal User:Bob --principal=User:Carol --topic *
@ --list --principal User:nobody
@ --list --principal --topic t
@ --list --topic nowhere
@ --list --operation Read --force
--bootstrap-server PLAIN --command-config ADMIN --list --topic t
--bootstrap-server PLAIN --command-config=ADMIN --add --allow-principal User:Gina --topic x
@ --list --topic x --command-config
--bootstrap-server PLAIN --command-config ALICE --list
--bootstrap-server PLAIN --command-config ALICE --add --allow-principal User:Gina --topic x
--bootstrap-server PLAIN --command-config ALICE --remove --force --topic x
--bootstrap-server PLAIN --command-config GUESSED --list
@ --command-config MISSING --list
@ --add --topic x
@ --add --allow-principal User:Gina
@ --add --allow-principal User:Gina --cluster --resource-pattern-type prefixed
@ --add --allow-principal User:Gina --topic x --resource-pattern-type any
@ --add --allow-principal User:Gina --topic x --resource-pattern-type match
@ --add --allow-principal User:Gina --topic x --resource-pattern-type other
@ --add --allow-principal User:Gina --topic x --resource-pattern-type unknown
@ --list --resource-pattern-type any --resource-pattern-type any
@ --add --allow-principal Gina --topic x
@ --add --allow-principal "" --topic x
@ --add --allow-principal User:Gina --topic x --operation Reed
@ --add --allow-principal User:Gina --topic x --operation ALTER_CONFIGS
@ --add --allow-principal User:Gina --topic x --operation Any
@ --add --allow-principal User:Gina --topic x --operation CreateTokens
@ --add --allow-principal User:Gina --group x --operation Write
@ --add --allow-principal User:Gina --cluster --operation Read
@ --add --allow-principal User:Gina --transactional-id x --operation Read
@ --add --allow-principal User:Gina --delegation-token x --operation Read
@ --add --allow-principal User:Gina --user-principal x --operation Read
@ --add --allow-host h --topic x
@ --add --deny-host h --topic x
@ --add --allow-principal User:Gina --producer
@ --add --allow-principal User:Gina --producer --topic x --operation Read
@ --add --deny-principal User:Gina --producer --topic x
@ --add --deny-host h --consumer --topic x --group x
@ --add --allow-principal User:Gina --consumer --topic x
@ --add --allow-principal User:Gina --consumer --group x
@ --add --allow-principal User:Gina --consumer --topic x --group x --cluster
@ --add --allow-principal User:Gina --topic x --idempotent
@ --add --allow-principal User:Gina --topic x --principal User:a
@ --list --producer --topic x
@ --list --allow-principal User:Gina
@ --list --deny-host h
@ --list --add
@
@ --bootstrap-controller BROKER --list
--list
--bootstrap-server --list
--bootstrap-server
@ @ --list
--bootstrap-server nowhere --list
--bootstrap-server host:port --list
--bootstrap-server , --list
@ --lst
@ --topi x --list
@ -x --list
@ --list --topic
--help
@ --list --help
--bootstrap-controller BROKER --list
@ --remove --topic t
@ --remove --force
@ --remove --force --allow-principal User:Bob --operation Read --topic t
@ --remove --force --allow-principal User:Bob \
    --allow-principal User:Alice --allow-host 198.51.100.0 --allow-host 198.51.100.1 \
    --operation Read --operation Write --topic t
@ --remove --force --allow-principal User:Alice --producer --consumer \
    --topic t --group g
@ --remove --force --producer --topic s
@ --remove --force --topic Test- --resource-pattern-type Prefixed
@ --remove --force --cluster --operation Read --allow-principal User:x
@ --remove --force --cluster
@ --remove --force --cluster --resource-pattern-type any
@ --remove --force --topic w --resource-pattern-type match
@ --remove --force --topic u --topic x --group g --transactional-id tx \
    --resource-pattern-type any
@ --list
""".replace("@", "--bootstrap-server BROKER")
