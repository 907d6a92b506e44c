import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { ServiceError } from './errors.ts'
import { type BodyStream, isBodyTooLarge, readBounded } from './readBounded.ts'

const bytes = (...values: number[]) => Uint8Array.from(values)

/** The same chunks as a web stream and as an async iterable. Each records its cancellation. */
function createBodies(createChunks: () => Iterator<Uint8Array>) {
  const cancelled: string[] = []
  const [fromStream, fromIterable] = [createChunks(), createChunks()]
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const { done, value } = fromStream.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: () => void cancelled.push('stream'),
    },
    { highWaterMark: 0 },
  )
  const iterable: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => fromIterable.next(),
      return: async () => {
        cancelled.push('iterable')
        return { done: true, value: undefined }
      },
    }),
  }
  return { bodies: { stream, iterable } as Record<string, BodyStream>, cancelled }
}

const kinds = ['stream', 'iterable']

test.each(kinds)('%s: joins the chunks, including empty ones', async (kind) => {
  const { bodies, cancelled } = createBodies(() => [bytes(1), bytes(), bytes(2, 3)].values())
  expect(await readBounded(bodies[kind], 100)).toEqual(bytes(1, 2, 3))
  expect(cancelled).toEqual([])
})

test.each(kinds)('%s: reads a body in very many pieces', async (kind) => {
  const expected = Uint8Array.from({ length: 150_000 }, (_, index) => index % 251)
  const { bodies } = createBodies(function* () {
    for (const value of expected) yield bytes(value)
  })
  const read = await readBounded(bodies[kind], 150_000)
  expect(Buffer.compare(read, expected)).toBe(0)
  expect(read.buffer.byteLength).toBe(150_000)
})

test.each(kinds)('%s: accepts exactly the limit, and rejects and cancels at one byte more', async (kind) => {
  const exact = createBodies(() => [bytes(1, 2), bytes(3, 4)].values())
  expect(await readBounded(exact.bodies[kind], 4)).toEqual(bytes(1, 2, 3, 4))
  const over = createBodies(() => [bytes(1, 2), bytes(3, 4, 5)].values())
  await expect(readBounded(over.bodies[kind], 4)).rejects.toEqual(withCode('body_too_large'))
  expect(over.cancelled).toEqual([kind])
})

test.each(kinds)('%s: reads an endless body only up to the limit', async (kind) => {
  let chunks = 0
  const { bodies, cancelled } = createBodies(function* () {
    for (;;) {
      chunks++
      yield new Uint8Array(1000)
    }
  })
  await expect(readBounded(bodies[kind], 10_000)).rejects.toEqual(withCode('body_too_large'))
  expect(chunks).toBe(11)
  expect(cancelled).toEqual([kind])
})

test.each(kinds)('%s: passes on an error of the stream', async (kind) => {
  const failure = new Error('reset')
  const { bodies } = createBodies(function* () {
    yield bytes(1)
    throw failure
  })
  await expect(readBounded(bodies[kind], 100)).rejects.toBe(failure)
})

test.each(kinds)('%s: rejects and cancels at a chunk that is not bytes', async (kind) => {
  const { bodies, cancelled } = createBodies(() => ['text' as unknown as Uint8Array].values())
  await expect(readBounded(bodies[kind], 100)).rejects.toThrow(TypeError)
  expect(cancelled).toEqual([kind])
})

test.each(kinds)('%s: a limit of zero accepts only an empty body', async (kind) => {
  const { bodies } = createBodies(() => [bytes()].values())
  expect(await readBounded(bodies[kind], 0)).toEqual(bytes())
  const { bodies: full } = createBodies(() => [bytes(1)].values())
  await expect(readBounded(full[kind], 0)).rejects.toEqual(withCode('body_too_large'))
})

test.each(kinds)('%s: a limit that is not a number rejects everything', async (kind) => {
  const { bodies } = createBodies(() => [bytes(1)].values())
  await expect(readBounded(bodies[kind], Number.NaN)).rejects.toEqual(withCode('body_too_large'))
})

test('no body gives no bytes', async () => {
  expect(await readBounded(null, 0)).toEqual(bytes())
  expect(await readBounded(undefined, 0)).toEqual(bytes())
  expect(await readBounded(new Response(null).body, 0)).toEqual(bytes())
})

test('does not wait for a cancellation that never ends or fails', async () => {
  for (const cancel of [() => new Promise<never>(() => {}), () => Promise.reject(new Error('stuck'))]) {
    const stream = new ReadableStream({ pull: (controller) => controller.enqueue(bytes(1, 2)), cancel })
    await expect(readBounded(stream, 1)).rejects.toEqual(withCode('body_too_large'))
    const iterable: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: bytes(1, 2) }), return: cancel }),
    }
    await expect(readBounded(iterable, 1)).rejects.toEqual(withCode('body_too_large'))
  }
})

test('accepts an iterable without a way to cancel', async () => {
  const iterable: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: bytes(1, 2) }) }),
  }
  await expect(readBounded(iterable, 1)).rejects.toEqual(withCode('body_too_large'))
})

test('isBodyTooLarge is true only for the error of the limit', async () => {
  const { bodies } = createBodies(() => [bytes(1, 2)].values())
  expect(isBodyTooLarge(await readBounded(bodies.stream, 1).catch((error: unknown) => error))).toBe(true)
  const others = [
    new ServiceError('invalid_json', 'x'),
    Object.assign(new Error(), { code: 'body_too_large' }),
    undefined,
  ]
  for (const other of others) expect(isBodyTooLarge(other)).toBe(false)
})
