import { expect, test } from 'vitest'
import { wait } from './wait.ts'

test('ends by itself', async () => {
  await expect(wait(0)).resolves.toBeUndefined()
})
