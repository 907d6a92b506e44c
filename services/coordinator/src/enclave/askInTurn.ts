export type AskInTurnOptions = {
  /** How long one may keep silent before the next is asked as well. */
  patienceMs: number
  /** Whether one has answered no call for that long: one that is only slow is waited for. Unset: all are silent. */
  isSilent?(index: number): boolean
  /** Whether a failure holds for all of them, so that no other need be asked. */
  isFinal(error: unknown): boolean
  /** Told when one is asked because those before it keep silent. */
  onSilence?(index: number): void
}

/**
 * Asks one after the other: the next one when one has failed, or has kept silent for too long. The first answer counts, and those
 * who come later are not listened to. A process that is frozen still accepts connections, so waiting for an error would be long.
 */
export function askInTurn<Answer>(
  asks: readonly ((index: number) => Promise<Answer>)[],
  { patienceMs, isSilent = () => true, isFinal, onSilence }: AskInTurnOptions,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let next = 0
    let underWay = 0
    let isSettled = false
    let timer: NodeJS.Timeout | undefined

    function settle(how: () => void) {
      isSettled = true
      clearTimeout(timer)
      how()
    }

    function waitFor(index: number) {
      timer = setTimeout(() => {
        if (!isSilent(index)) return waitFor(index)
        onSilence?.(index)
        askNext()
      }, patienceMs)
    }

    function askNext() {
      clearTimeout(timer)
      const index = next
      const ask = asks[index]
      if (isSettled || ask === undefined) return
      next += 1
      underWay += 1
      if (next < asks.length) waitFor(index)
      ask(index).then(
        (answer) => settle(() => resolve(answer)),
        (error: unknown) => {
          underWay -= 1
          if (isFinal(error) || (underWay === 0 && next === asks.length)) settle(() => reject(error))
          else askNext()
        },
      )
    }

    askNext()
  })
}
