import { expect, test } from 'vitest'
import { parseProviders } from './serviceResponses.ts'

const icon = 'data:image/svg+xml;base64,AAAA'
const google = { id: 'google', name: 'Google', icon }

test('lists the service’s providers in order', () => {
  const other = { id: 'other', name: 'Other', icon }
  expect(parseProviders({ providers: [other, google] })).toEqual([other, google])
})

test.each([null, [], 'x', {}, { providers: {} }, { providers: [null, 5, 'google', [], {}] }])(
  'lists no providers for %j',
  (body) => {
    expect(parseProviders(body)).toEqual([])
  },
)

test.each([{ id: '' }, { id: 5 }, { name: '' }, { name: null }])('skips a provider with %j', (change) => {
  expect(parseProviders({ providers: [{ ...google, ...change }, google] })).toEqual([google])
})

test.each([
  undefined,
  'https://tracker.example/pixel.svg',
  'javascript:alert(1)',
  'data:text/html;base64,AAAA',
  'data:image/svg+xml,<svg onload=alert(1)>',
])('hides the icon %j', (picture) => {
  expect(parseProviders({ providers: [{ ...google, icon: picture }] })).toEqual([{ ...google, icon: null }])
})
