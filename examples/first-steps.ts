import { setTimeout as sleep } from 'node:timers/promises'
import { Sluice } from 'sluice'

const sluice = new Sluice({ redis: 'embedded' }) // or 'redis://host:6379'
const queue = sluice.queue('promotions', { limits: { queue: '200/s', tenant: '100/s' } })

queue.process<{ to: string; isLast: boolean }>('send', async (job, { signal }) => {
  await sleep(5, undefined, { signal }) // your call to the partner's API goes here
  if (job.payload.isLast) console.log(`${job.tenant} is done`)
})

function* recipients(count: number) {
  for (let n = 1; n <= count; n++) yield { payload: { to: `user-${n}`, isLast: n === count } }
}

await queue.submit({ tenant: 'large', type: 'send', jobs: recipients(300) })
await queue.submit({ tenant: 'small', type: 'send', jobs: recipients(20) }) // does not wait for the 300

for (let open = 1; open > 0; await sleep(200)) {
  const { waiting, delayed, running } = await queue.counts()
  open = waiting + delayed + running
}
await sluice.close()
