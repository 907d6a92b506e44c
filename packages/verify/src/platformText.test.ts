import type { TdPlatform } from '@countersign/attestation'
import { expect, test } from 'vitest'
import { parsePlatformText, toPlatformText } from './platformText.ts'

const id = 'ab'.repeat(16)

test.each<[TdPlatform, string]>([
  [{ fmspc: '00806f050000' }, 'fmspc:00806f050000'],
  [{ ppid: id }, `ppid:${id}`],
  [{ platformInstanceId: id }, `platformInstanceId:${id}`],
])('a machine is written with what names it, and read back as the same', (platform, text) => {
  expect(toPlatformText(platform)).toBe(text)
  expect(parsePlatformText(text)).toEqual(platform)
})

test('its hex may be copied in either case and with 0x', () => {
  expect(parsePlatformText(`ppid:0x${id.toUpperCase()}`)).toEqual({ ppid: id })
})

test.each([
  '',
  id,
  'ppid',
  'ppid:',
  `PPID:${id}`,
  `ppid:${id}:`,
  `ppid:${id}00`,
  `fmspc:${id}`,
  'ppid:00806f050000',
  'fmspc:00806g050000',
  `__proto__:${id}`,
  `constructor:${id}`,
  `ppid=${id}`,
])('%s is no machine', (text) => {
  expect(parsePlatformText(text)).toBeUndefined()
})
