/** The counts of an action of so many jobs, none of them in a place but those named. */
export function actionCounts(total: number, places: object): object {
  return { total, waiting: 0, running: 0, delayed: 0, succeeded: 0, failed: 0, canceled: 0, ...places }
}
