/**
 * Awaits checks that run side by side and fails with the first failure in their order, so that the same bad evidence always
 * gets the same error, whichever check happens to finish first.
 */
export async function inOrder<const Checks extends readonly Promise<unknown>[]>(
  checks: Checks,
): Promise<{ -readonly [Index in keyof Checks]: Awaited<Checks[Index]> }> {
  const settled = await Promise.allSettled(checks)
  const values = settled.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  return values as { -readonly [Index in keyof Checks]: Awaited<Checks[Index]> }
}
