import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice } from 'sluice'

const sluice = new Sluice({ redis: 'embedded' }) // or 'redis://host:6379'
const queue = sluice.queue('promotions', { limits: { queue: '200/s', tenant: '100/s' } })

queue.process<{ to: string }>('send', async (job, { signal }) => {
  await sleep(5, undefined, { signal }) // your call to the partner's API goes here
  return { sentTo: job.payload.to }
})

function* recipients(count: number) {
  for (let n = 1; n <= count; n++) yield { payload: { to: `user-${n}` } }
}

const large = await queue.submit({ tenant: 'large', type: 'send', jobs: recipients(300) })
const small = await queue.submit({ tenant: 'small', type: 'send', jobs: recipients(20) }) // does not wait for the 300

void small.finished().then(({ counts }) => console.log(`small is done: ${counts.succeeded} sent`))
for await (const { done, total } of large.progress()) console.log(`large: ${done} of ${total}`)
await sluice.close()
