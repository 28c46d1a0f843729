// The story driver of kafkajs; tests/clients/drivers.py describes what it reads and prints.
// Node resolves `require` from this file's directory, so kafkajs comes from the directory given
// as the first argument.
'use strict'

const { createRequire } = require('node:module')
const { readFileSync } = require('node:fs')
const readline = require('node:readline')
const {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  Kafka,
  ResourcePatternTypes,
  logLevel,
} = createRequire(`${process.argv[2]}/`)('kafkajs')

let admin = null
let ssl = undefined

async function disconnect() {
  if (admin) await admin.disconnect()
  admin = null
  return null
}

async function connect(bootstrap, username, password, mechanism = 'PLAIN') {
  await disconnect()
  const kafka = new Kafka({
    brokers: [bootstrap],
    ssl,
    sasl:
      username === '-' ? undefined : { mechanism: mechanism.toLowerCase(), username, password },
    logLevel: logLevel.NOTHING,
    retry: { retries: 2 },
  })
  admin = kafka.admin()
  await admin.connect()
  return null
}

function tls(ca, identity) {
  const own = identity && readFileSync(identity, 'utf8')
  ssl = { ca: [readFileSync(ca, 'utf8')], ...(own && { key: own, cert: own }) }
  return null
}

function entry(word) {
  const fields = word.split(',').map(field => (field === '' ? undefined : field))
  const [type, resourceName, pattern, principal, host, operation, permission] = fields
  return {
    resourceType: AclResourceTypes[type],
    resourceName,
    resourcePatternType: ResourcePatternTypes[pattern],
    principal,
    host,
    operation: AclOperationTypes[operation],
    permissionType: AclPermissionTypes[permission],
  }
}

function nameIn(enumeration, value) {
  return Object.keys(enumeration).find(name => enumeration[name] === value)
}

function text(resource, acl) {
  return [
    nameIn(AclResourceTypes, resource.resourceType),
    resource.resourceName,
    nameIn(ResourcePatternTypes, resource.resourcePatternType),
    acl.principal,
    acl.host,
    nameIn(AclOperationTypes, acl.operation),
    nameIn(AclPermissionTypes, acl.permissionType),
  ].join(',')
}

async function create(...words) {
  await admin.createAcls({ acl: words.map(entry) })
  return words.map(() => null)
}

async function list(word) {
  const { resources } = await admin.describeAcls(entry(word))
  return resources.flatMap(resource => resource.acls.map(acl => text(resource, acl)))
}

async function deleteAll(...words) {
  const { filterResponses } = await admin.deleteAcls({ filters: words.map(entry) })
  return filterResponses.map(({ matchingAcls }) => matchingAcls.map(acl => text(acl, acl)))
}

const verbs = { connect, tls, create, list, delete: deleteAll, disconnect }

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split(' ')
    let answer
    if (verb === 'disconnect') ssl = undefined
    try {
      answer = { result: await verbs[verb](...words) }
    } catch (error) {
      answer = { error: error.type ?? error.message }
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`)
  }
  await disconnect()
}

main()
