// Stories of kafkajs with a cluster: `node stories.js MODULES STORY BROKERS USER PASSWORD [PREFIX]`
// prints what the story saw as one line of JSON. PREFIX begins the names of topics, groups and ids. Node resolves `require` from this file's directory, so
// kafkajs comes from the directory given as the first argument.
'use strict'

const { createRequire } = require('node:module')
const [modules, story, brokers, username, password, prefix = ''] = process.argv.slice(2)
const { ConfigResourceTypes, Kafka, logLevel } = createRequire(`${modules}/`)('kafkajs')

const kafka = new Kafka({
  clientId: 'story',
  brokers: brokers.split(','),
  sasl: { mechanism: 'plain', username, password },
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 8 },
})
const topic = `${prefix}orders`
const sums = `${prefix}sums`
const groupId = `${prefix}group`
const transactionalId = `${prefix}writer`
const exactlyOnce = { idempotent: true, maxInFlightRequests: 1 }

const numbered = (first, count) =>
  Array.from({ length: count }, (_, n) => ({ key: `${first + n}`, value: `value ${first + n}` }))

function failed(error) {
  console.error(error)
  process.exit(1)
}

async function until(what) {
  while (!what()) await new Promise(resolve => setTimeout(resolve, 20))
}

async function using(client, use) {
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.disconnect()
  }
}

// A running member of a group; `values` are those of the records that it gets.
async function member(values, { group = groupId, from = topic } = {}) {
  const consumer = kafka.consumer({ groupId: group, heartbeatInterval: 200, maxWaitTimeInMs: 200 })
  const has = { partitions: [] }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    has.partitions = payload.memberAssignment[from] ?? []
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => failed(payload.error))
  await consumer.connect()
  await consumer.subscribe({ topics: [from], fromBeginning: true })
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: async ({ message }) => values.push(message.value.toString()),
  })
  return { consumer, has }
}

// The committed offset of each partition of the topic.
async function committed(client) {
  const [{ partitions }] = await client.fetchOffsets({ groupId, topics: [topic] })
  return partitions.sort((a, b) => a.partition - b.partition).map(each => each.offset)
}

async function topics(client) {
  const seen = { brokers: (await client.describeCluster()).brokers.length }
  const configEntries = [{ name: 'retention.ms', value: '7200000' }]
  const wanted = [{ topic, numPartitions: 2, configEntries }]
  seen.created = await client.createTopics({ topics: wanted })
  seen.createdAgain = await client.createTopics({ topics: wanted })
  await client.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  const { topics } = await client.fetchTopicMetadata({ topics: [topic] })
  seen.partitions = topics[0].partitions.length
  seen.isListed = (await client.listTopics()).includes(topic)

  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const shorter = [{ name: 'retention.ms', value: '3600000' }]
  await client.alterConfigs({ resources: [{ ...resource, configEntries: shorter }] })
  const { resources } = await client.describeConfigs({
    resources: [{ ...resource, configNames: ['retention.ms'] }],
  })
  seen.retention = resources[0].configEntries[0].configValue
  return seen
}

async function offsets(client) {
  const time = Date.now()
  const messages = numbered(0, 10).map(each => ({ ...each, partition: 0, timestamp: `${time}` }))
  await using(kafka.producer(), producer => producer.send({ topic, messages }))
  const first = async found => (await found).find(each => each.partition === 0)
  const { low, high } = await first(client.fetchTopicOffsets(topic))
  const at = await first(client.fetchTopicOffsetsByTimestamp(topic, time))
  const after = await first(client.fetchTopicOffsetsByTimestamp(topic, time + 1))
  await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] })
  const { low: lowAfterDeletion } = await first(client.fetchTopicOffsets(topic))
  return { offsets: [low, high], offsetsByTime: [at.offset, after.offset], lowAfterDeletion }
}

async function groupsOffsets(client) {
  const seen = {}
  await client.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '7' }] })
  seen.set = (await committed(client))[0]
  await client.resetOffsets({ groupId, topic, earliest: true })
  const resolved = { groupId, topics: [topic], resolveOffsets: true }
  const [{ partitions }] = await client.fetchOffsets(resolved)
  seen.reset = partitions.find(each => each.partition === 0).offset
  seen.group = (await client.listGroups()).groups[0]
  seen.state = (await client.describeGroups([groupId])).groups[0].state
  seen.deletion = (await client.deleteGroups([groupId]))[0].errorCode
  return seen
}

async function admin() {
  return using(kafka.admin(), async client => {
    const seen = {
      ...(await topics(client)),
      ...(await offsets(client)),
      ...(await groupsOffsets(client)),
    }
    await client.deleteTopics({ topics: [topic] })
    return { ...seen, isListedAtLast: (await client.listTopics()).includes(topic) }
  })
}

// Two members share the partitions, one of them leaves, and the other goes on with all.
async function groups() {
  const values = []
  const first = await member(values)
  const send = (from, count) => producer.send({ topic, messages: numbered(from, count) })
  const producer = kafka.producer(exactlyOnce)
  await producer.connect()
  for (let batch = 0; batch < 10; batch += 1) await send(batch * 20, 20)
  const second = await member(values)
  const shares = () => [first.has.partitions.length, second.has.partitions.length]
  await until(() => shares().every(Boolean) && shares()[0] + shares()[1] === 4)
  const seen = { shares: shares() }
  await send(200, 100)
  await until(() => values.length >= 300)
  await second.consumer.disconnect()
  await until(() => first.has.partitions.length === 4)
  await send(300, 100)
  await until(() => values.length >= 400)
  await first.consumer.disconnect()
  await producer.disconnect()
  return { ...seen, values, committed: await using(kafka.admin(), committed) }
}

// What is written and how far was read are one transaction; what is aborted nobody sees.
async function transactions() {
  const read = []
  const written = []
  const reader = await member(written, { group: `${prefix}readers`, from: sums })
  const { consumer } = await member(read)
  const producer = kafka.producer({ ...exactlyOnce, transactionalId })
  await producer.connect()
  const messages = numbered(0, 10).map(each => ({ ...each, partition: 1 }))
  await producer.send({ topic, messages })
  await until(() => read.length === 10)
  await consumer.disconnect()

  const attempt = async (value, offset) => {
    const transaction = await producer.transaction()
    await transaction.send({ topic: sums, messages: [{ value }] })
    const partitions = [{ partition: 1, offset }]
    await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions }] })
    return transaction
  }
  const offset = async () => (await using(kafka.admin(), committed))[1]
  const seen = {}
  await (await attempt('aborted', '11')).abort()
  seen.afterAbort = await offset()
  await (await attempt('committed', '12')).commit()
  seen.afterCommit = await offset()

  // Another producer of the same id fences the first, and ends what that has begun.
  const forgotten = await attempt('forgotten', '13')
  await using(kafka.producer({ ...exactlyOnce, transactionalId }), async other => {
    const transaction = await other.transaction()
    await transaction.send({ topic: sums, messages: [{ value: 'last' }] })
    seen.fenced = await forgotten.commit().catch(error => error.type)
    await transaction.commit()
  })
  await until(() => written.includes('last'))
  seen.afterFencing = await offset()
  await reader.consumer.disconnect()
  await producer.disconnect()
  return { ...seen, written }
}

const stories = { admin, groups, transactions }
stories[story]().then(seen => console.log(JSON.stringify(seen)), failed)
