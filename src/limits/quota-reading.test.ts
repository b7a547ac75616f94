import { describe, expect, it } from 'vitest'
import type { AnswerHeaders } from './answer-headers.ts'
import { quotaReadingOf } from './quota-reading.ts'

/** Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110. */
const now = 784_111_777_000

describe('what is left', () => {
  it.each<[string, AnswerHeaders, { remaining: number; resetInMs: number; limit?: number }]>([
    [
      'GitHub',
      {
        date: 'Sun, 06 Nov 1994 08:49:37 GMT',
        'x-ratelimit-limit': '5000',
        'x-ratelimit-remaining': '4987',
        'x-ratelimit-reset': '784115377',
        'x-ratelimit-used': '13',
        'x-ratelimit-resource': 'core',
      },
      { remaining: 4_987, resetInMs: 3_600_000, limit: 5_000 },
    ],
    [
      'GitLab',
      { 'ratelimit-limit': '600', 'ratelimit-remaining': '599', 'ratelimit-reset': '784111837' },
      { remaining: 599, resetInMs: 60_000, limit: 600 },
    ],
    [
      'Discord',
      { 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '4', 'x-ratelimit-reset-after': '1.5' },
      { remaining: 4, resetInMs: 1_500, limit: 5 },
    ],
    [
      'Okta and Twitter',
      { 'x-rate-limit-limit': '900', 'x-rate-limit-remaining': '899', 'x-rate-limit-reset': '784112677' },
      { remaining: 899, resetInMs: 900_000, limit: 900 },
    ],
    [
      'Vimeo and others with milliseconds',
      { 'x-ratelimit-remaining': '10', 'x-ratelimit-reset': '784111787000' },
      { remaining: 10, resetInMs: 10_000 },
    ],
    [
      'Atlassian, with a date of ISO 8601',
      {
        date: 'Sun, 06 Nov 1994 08:49:37 GMT',
        'x-ratelimit-limit': '350',
        'x-ratelimit-remaining': '78',
        'x-ratelimit-reset': '1994-11-06T08:50Z',
        'x-ratelimit-nearlimit': 'false',
      },
      { remaining: 78, resetInMs: 23_000, limit: 350 },
    ],
    [
      'OpenAI, by requests',
      {
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '59',
        'x-ratelimit-reset-requests': '6m0s',
        'x-ratelimit-limit-tokens': '150000',
        'x-ratelimit-remaining-tokens': '149984',
        'x-ratelimit-reset-tokens': '120ms',
      },
      { remaining: 59, resetInMs: 360_000, limit: 60 },
    ],
    [
      'Anthropic, by requests',
      {
        'anthropic-ratelimit-requests-limit': '1000',
        'anthropic-ratelimit-requests-remaining': '999',
        'anthropic-ratelimit-requests-reset': '1994-11-06T08:49:40Z',
      },
      { remaining: 999, resetInMs: 3_000, limit: 1_000 },
    ],
    [
      'Zendesk and others of draft 02',
      { 'ratelimit-limit': '700, 700;w=60', 'ratelimit-remaining': '699', 'ratelimit-reset': '41' },
      { remaining: 699, resetInMs: 41_000, limit: 700 },
    ],
    [
      'Reddit, with fractions',
      { 'x-ratelimit-remaining': '595.0', 'x-ratelimit-reset': '123', 'x-ratelimit-used': '5' },
      { remaining: 595, resetInMs: 123_000 },
    ],
    [
      'an upstream that exaggerates',
      { 'x-ratelimit-limit': '100.5', 'x-ratelimit-remaining': '7.5', 'x-ratelimit-reset': '99999999' },
      { remaining: 7, resetInMs: 366 * 86_400_000, limit: 100 },
    ],
    [
      'the draft of 2021',
      { ratelimit: 'limit=100, remaining=50, reset=30' },
      { remaining: 50, resetInMs: 30_000, limit: 100 },
    ],
    [
      'the draft of today, with its policy',
      { ratelimit: '"default";r=50;t=30', 'ratelimit-policy': '"default";q=100;w=60' },
      { remaining: 50, resetInMs: 30_000, limit: 100 },
    ],
    [
      'several policies, the one with least left',
      {
        ratelimit: ['"burst";r=90;t=2', '"daily";r=7;t=3600'],
        'ratelimit-policy': '"burst";q=100;w=10, "daily";q=1000;w=86400',
      },
      { remaining: 7, resetInMs: 3_600_000, limit: 1_000 },
    ],
  ])('is read from the headers of %s', (_, headers, expected) => {
    expect(quotaReadingOf(headers, now)).toEqual({ limit: undefined, ...expected })
  })

  it.each<[string, AnswerHeaders]>([
    ['there are no such headers', { etag: '"5"' }],
    ['Shopify tells a fill, not a reset', { 'x-shopify-shop-api-call-limit': '32/40' }],
    ['Slack and Stripe tell nothing before they refuse', { 'x-slack-req-id': 'a', 'request-id': 'req_1' }],
    [
      'HubSpot tells no instant',
      { 'x-hubspot-ratelimit-remaining': '109', 'x-hubspot-ratelimit-interval-milliseconds': '10000' },
    ],
    ['Salesforce tells no instant', { 'sforce-limit-info': 'api-usage=18/5000' }],
    [
      'a number has more digits than anybody counts',
      { 'x-ratelimit-remaining': '9'.repeat(30), 'x-ratelimit-reset': '60' },
    ],
    ['nothing says until when', { 'x-ratelimit-remaining': '5' }],
    ['nothing says how much', { 'x-ratelimit-reset': '784112677' }],
    ['it is over', { 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '784111000' }],
    ['it is no number', { 'x-ratelimit-remaining': 'many', 'x-ratelimit-reset': '60' }],
    ['it is negative', { ratelimit: '"a";r=-5;t=30' }],
    ['it cannot be parsed', { ratelimit: '"a;r=5' }],
  ])('is not known when %s', (_, headers) => expect(quotaReadingOf(headers, now)).toBeUndefined())

  it('is measured by the clock of the upstream', () => {
    const headers = {
      date: 'Sun, 06 Nov 1994 08:49:37 GMT',
      'x-ratelimit-remaining': '5',
      'x-ratelimit-reset': '784111837',
    }

    expect(quotaReadingOf(headers, now + 3_600_000)?.resetInMs).toBe(60_000)
  })

  it.each([
    ['by ours, which is finer, while a Date in whole seconds fits it', 730, 59_270],
    ['by ours when the answer was on its way for a moment', 1_499, 58_501],
    ['by the Date when ours is ahead', 1_500, 60_000],
    ['by the Date when ours is behind', -1, 60_000],
  ])('is measured %s', (_, aheadMs, resetInMs) => {
    const headers = {
      date: 'Sun, 06 Nov 1994 08:49:37 GMT',
      'x-ratelimit-remaining': '5',
      'x-ratelimit-reset': '784111837',
    }

    expect(quotaReadingOf(headers, now + aheadMs)?.resetInMs).toBe(resetInMs)
  })
})
