import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { codeOf, createGate, fakeQuote, fakeReport, fakeReportData } from '../test/evidence.ts'
import { createFakeTsm, errno, type FakeTsmParameters } from '../test/tsmFilesystem.ts'
import { createConfigfsQuoteSource, createConfigfsReportSource } from './configfs.ts'
import { EvidenceError } from './errors.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const root = '/fake/tsm/report'

function createTdx(parameters: Partial<FakeTsmParameters> = {}) {
  const tsm = createFakeTsm({ root, outblob: (inblob) => fakeQuote(inblob), ...parameters })
  const waits: number[] = []
  const wait = async (durationMs: number) => {
    waits.push(durationMs)
  }
  return { tsm, waits, source: createConfigfsQuoteSource({ root, filesystem: tsm.filesystem, wait }) }
}

function createSnp(parameters: Partial<FakeTsmParameters> & { privlevel?: number } = {}) {
  const { privlevel, ...rest } = parameters
  const tsm = createFakeTsm({
    root,
    provider: 'sev_guest',
    outblob: (inblob, level) => {
      const report = fakeReport(inblob)
      report[0x30] = level
      return report
    },
    auxblob: new Uint8Array(),
    ...rest,
  })
  const options = { root, filesystem: tsm.filesystem, wait: async () => {} }
  return { tsm, source: createConfigfsReportSource(privlevel === undefined ? options : { ...options, privlevel }) }
}

describe('configfs-tsm quotes', () => {
  test('creates, writes, reads and removes an entry in the order of the kernel documentation', async () => {
    const { tsm, source } = createTdx()
    const reportData = fakeReportData()
    expect(source.mode).toBe('hardware')
    expect(await source.getQuote(reportData)).toEqual({ quote: fakeQuote(reportData) })
    expect(tsm.operations).toEqual([
      'mkdir',
      'read provider',
      'read generation',
      'write inblob',
      'read outblob',
      'read generation',
      'rmdir',
    ])
    expect(tsm.entriesLeft()).toBe(0)
  })

  test('touches no file for report data of a wrong length', async () => {
    const { tsm, source } = createTdx()
    expect(await codeOf(source.getQuote(new Uint8Array(48)))).toBe('report_data_length')
    expect(tsm.operations).toEqual([])
  })

  test('uses a separate entry for each call, never two at a time', async () => {
    const { tsm, source } = createTdx()
    const quotes = await Promise.all([1, 2, 3].map((seed) => source.getQuote(fakeReportData(seed))))
    expect(quotes.map(({ quote }) => quote[568])).toEqual([1, 2, 3])
    expect(tsm.entriesMade()).toBe(3)
    expect(tsm.mostEntries()).toBe(1)
  })

  test('rejects another provider before the firmware is asked', async () => {
    const { tsm, source } = createTdx({ provider: 'sev_guest' })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('provider_mismatch')
    expect(tsm.evidenceMade()).toBe(0)
    expect(tsm.entriesLeft()).toBe(0)
  })

  test('starts again with a new entry after another process wrote in between', async () => {
    const { tsm, source } = createTdx()
    let times = 1
    tsm.before('read outblob', (entry) => {
      if (times-- > 0) tsm.intrude(entry, fakeReportData(99))
    })
    const reportData = fakeReportData()
    expect((await source.getQuote(reportData)).quote).toEqual(fakeQuote(reportData))
    expect(tsm.entriesMade()).toBe(2)
    expect(tsm.entriesLeft()).toBe(0)
  })

  test('detects another process that wrote our bytes, by the generation', async () => {
    const { tsm, source } = createTdx()
    tsm.before('read outblob', (entry) => tsm.intrude(entry, fakeReportData()))
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('generation_mismatch')
  })

  test('fails with generation_mismatch after four attempts if another process keeps writing', async () => {
    const { tsm, waits, source } = createTdx()
    tsm.before('read outblob', (entry) => tsm.intrude(entry, fakeReportData(99)))
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('generation_mismatch')
    expect(tsm.entriesMade()).toBe(4)
    expect(waits).toEqual([250, 500, 1000])
    expect(tsm.entriesLeft()).toBe(0)
  })

  test('rejects a generation that is not a number', async () => {
    const { tsm, source } = createTdx()
    const { read } = tsm.filesystem
    tsm.filesystem.read = async (path, maxLength) =>
      path.endsWith('generation') ? new TextEncoder().encode('1e3\n') : read(path, maxLength)
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_malformed')
    expect(tsm.entriesLeft()).toBe(0)
  })

  test.each(['EBUSY', 'ETIMEDOUT', 'EINTR'])('retries after %s', async (code) => {
    const { tsm, waits, source } = createTdx()
    tsm.fail('read outblob', code, 2)
    const reportData = fakeReportData()
    expect((await source.getQuote(reportData)).quote).toEqual(fakeQuote(reportData))
    expect(waits).toEqual([250, 500])
    expect(tsm.entriesMade()).toBe(3)
    expect(tsm.entriesLeft()).toBe(0)
  })

  test('a driver that stays busy gives evidence_busy after four attempts', async () => {
    const { tsm, source } = createTdx()
    tsm.fail('read outblob', 'EBUSY')
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_busy')
    expect(tsm.entriesMade()).toBe(4)
    expect(tsm.entriesLeft()).toBe(0)
  })

  test.each(['mkdir', 'read provider', 'read generation', 'write inblob', 'read outblob'])(
    'a failure at %s is not retried, leaves no entry and does not block the next call',
    async (operation) => {
      const { tsm, source } = createTdx()
      tsm.fail(operation, 'EIO', 1)
      expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_io')
      expect(tsm.entriesLeft()).toBe(0)
      expect(await codeOf(source.getQuote(fakeReportData()))).toBe('none')
    },
  )

  test('the error has the errno and the attribute, but no written data', async () => {
    const { tsm, source } = createTdx()
    tsm.fail('read outblob', 'EIO')
    const error = await source.getQuote(fakeReportData()).catch((reason) => reason)
    expect(error).toBeInstanceOf(EvidenceError)
    expect(error).toMatchObject({ message: 'the guest driver refused', details: 'EIO: outblob' })
  })

  test('failing to remove an entry is an error if everything else succeeded', async () => {
    const { tsm, source } = createTdx()
    tsm.fail('rmdir', 'EIO')
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_io')
  })

  test('failing to remove an entry does not hide an earlier error', async () => {
    const { tsm, source } = createTdx({ provider: 'sev_guest' })
    tsm.fail('rmdir', 'EIO')
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('provider_mismatch')
  })

  test.each([
    ['ENOENT', 'mount configfs'],
    ['ENXIO', 'load the guest driver'],
    ['EACCES', 'root'],
    ['EROFS', 'container'],
  ])('mkdir that fails with %s gives advice', async (code, advice) => {
    const { tsm, source } = createTdx()
    tsm.fail('mkdir', code)
    await expect(source.getQuote(fakeReportData())).rejects.toMatchObject({
      code: 'configfs_unavailable',
      details: expect.stringContaining(advice),
    })
  })

  test('a machine without configfs-tsm gives configfs_unavailable, through the real file system', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'countersign-configfs-'))
    try {
      const missing = createConfigfsQuoteSource({ root: join(directory, 'tsm', 'report') })
      expect(await codeOf(missing.getQuote(fakeReportData()))).toBe('configfs_unavailable')
      await writeFile(join(directory, 'file'), '')
      const notADirectory = createConfigfsQuoteSource({ root: join(directory, 'file') })
      expect(await codeOf(notADirectory.getQuote(fakeReportData()))).toBe('configfs_unavailable')
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test.each([
    ['64 KiB and one byte', 'evidence_too_large', () => new Uint8Array(65_537)],
    ['nothing', 'evidence_malformed', () => new Uint8Array()],
    ['somebody else’s quote', 'evidence_mismatch', () => fakeQuote(fakeReportData(99))],
  ])('an outblob of %s gives %s', async (_name, code, outblob) => {
    const { tsm, source } = createTdx({ outblob })
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe(code)
    expect(tsm.entriesLeft()).toBe(0)
  })

  test('EFBIG, the kernel’s own limit, gives evidence_too_large', async () => {
    const { tsm, source } = createTdx()
    tsm.fail('read outblob', 'EFBIG')
    expect(await codeOf(source.getQuote(fakeReportData()))).toBe('evidence_too_large')
  })

  test('a read that hangs gives evidence_timeout; its entry is removed and the next call runs once it ends', async () => {
    const { tsm, source } = createTdx()
    const gate = createGate()
    const removed = createGate()
    tsm.before('read outblob', () => gate.opened)
    tsm.before('rmdir', () => removed.open())
    const code = codeOf(source.getQuote(fakeReportData(1)))
    await vi.advanceTimersByTimeAsync(30_000)
    expect(await code).toBe('evidence_timeout')
    expect(tsm.entriesLeft()).toBe(1)
    gate.open()
    await removed.opened
    // After the timeout, it doesn't retry or read the generation again.
    expect(tsm.operations.slice(-2)).toEqual(['read outblob', 'rmdir'])
    expect(await codeOf(source.getQuote(fakeReportData(2)))).toBe('none')
    expect(tsm.entriesLeft()).toBe(0)
    expect(tsm.mostEntries()).toBe(1)
  })

  test('a call that timed out between two attempts makes no further one', async () => {
    const gate = createGate()
    const tsm = createFakeTsm({ root, outblob: (inblob) => fakeQuote(inblob) })
    tsm.fail('read outblob', 'EBUSY', 1)
    const source = createConfigfsQuoteSource({
      root,
      filesystem: tsm.filesystem,
      wait: () => gate.opened,
      timeoutMs: 1000,
    })
    const code = codeOf(source.getQuote(fakeReportData(1)))
    await vi.advanceTimersByTimeAsync(1000)
    expect(await code).toBe('evidence_timeout')
    expect(tsm.entriesLeft()).toBe(0)
    gate.open()
    expect(await codeOf(source.getQuote(fakeReportData(2)))).toBe('none')
    expect(tsm.entriesMade()).toBe(2)
  })

  test('errors without an errno are reported as such', async () => {
    const { tsm, source } = createTdx()
    tsm.before('mkdir', () => {
      throw new Error('odd')
    })
    await expect(source.getQuote(fakeReportData())).rejects.toMatchObject({
      code: 'evidence_io',
      details: 'unknown: mkdir',
    })
  })
})

describe('configfs-tsm reports', () => {
  test('returns only a report if the host has no certificates', async () => {
    const { source } = createSnp()
    expect(source.mode).toBe('hardware')
    expect(await source.getReport(fakeReportData())).toEqual({ report: fakeReport(fakeReportData()) })
  })

  test('returns the host’s certificates unchanged', async () => {
    const auxblob = Uint8Array.of(1, 2, 3)
    const { source } = createSnp({ auxblob })
    expect((await source.getReport(fakeReportData())).certificates).toEqual(auxblob)
  })

  test('writes a privilege level, which counts as a write', async () => {
    const { tsm, source } = createSnp({ privlevel: 2 })
    expect((await source.getReport(fakeReportData())).report[0x30]).toBe(2)
    expect(tsm.operations).toContain('write privlevel')
  })

  test('writes no privilege level by default', async () => {
    const { tsm, source } = createSnp()
    await source.getReport(fakeReportData())
    expect(tsm.operations).not.toContain('write privlevel')
  })

  test('leaves a privilege level below the minimum to the driver', async () => {
    const { tsm, source } = createSnp({ privlevel: 0, privlevelFloor: 1 })
    await expect(source.getReport(fakeReportData())).rejects.toMatchObject({
      code: 'evidence_io',
      details: 'EINVAL: privlevel',
    })
    expect(tsm.entriesLeft()).toBe(0)
  })

  test.each([-1, 4, 1.5, Number.NaN])('rejects a privilege level of %d at once', (privlevel) => {
    expect(() => createConfigfsReportSource({ privlevel })).toThrow(
      expect.objectContaining({ code: 'privlevel_invalid' }),
    )
  })

  test('rejects a TDX guest', async () => {
    const { source } = createSnp({ provider: 'tdx_guest' })
    expect(await codeOf(source.getReport(fakeReportData()))).toBe('provider_mismatch')
  })

  test('detects a write that the kernel lost, by the generation', async () => {
    const { tsm, source } = createSnp()
    const { read } = tsm.filesystem
    tsm.filesystem.read = async (path, maxLength) =>
      path.endsWith('generation') ? new TextEncoder().encode('0\n') : read(path, maxLength)
    expect(await codeOf(source.getReport(fakeReportData()))).toBe('generation_mismatch')
    expect(tsm.entriesLeft()).toBe(0)
  })

  test.each([
    ['1183 bytes', 'evidence_malformed', () => new Uint8Array(1183)],
    ['1185 bytes', 'evidence_too_large', () => new Uint8Array(1185)],
    ['another’s report', 'evidence_mismatch', () => fakeReport(fakeReportData(99))],
  ])('an outblob of %s gives %s', async (_name, code, outblob) => {
    const { tsm, source } = createSnp({ outblob })
    expect(await codeOf(source.getReport(fakeReportData()))).toBe(code)
    expect(tsm.entriesLeft()).toBe(0)
  })

  test('accepts an auxblob of 64 KiB, and rejects one byte more', async () => {
    expect(await codeOf(createSnp({ auxblob: new Uint8Array(65_536) }).source.getReport(fakeReportData()))).toBe('none')
    expect(await codeOf(createSnp({ auxblob: new Uint8Array(65_537) }).source.getReport(fakeReportData()))).toBe(
      'evidence_too_large',
    )
  })

  test('retries after EBUSY at the certificates too', async () => {
    const { tsm, source } = createSnp()
    let left = 1
    tsm.before('read auxblob', () => {
      if (left-- > 0) throw errno('EBUSY')
    })
    expect(await codeOf(source.getReport(fakeReportData()))).toBe('none')
    expect(tsm.entriesMade()).toBe(2)
  })
})
