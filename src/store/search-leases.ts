/**
 * A running job is found by looking through the leases, of which a script looks at a bounded number: it says where to go on,
 * and is asked again from there. They are looked through in the order in which they run out, so that one that is renewed
 * meanwhile comes again, and a job that runs all the time is not missed.
 */
export async function searchLeases(
  ask: (leasesFrom: string) => Promise<readonly unknown[]>,
): Promise<readonly unknown[]> {
  let reply = await ask('-inf')
  while (reply[0] === 'again') reply = await ask(reply[1] as string)
  return reply
}
