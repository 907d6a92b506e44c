/** A phrase that a rule finds and that stays, with the reason. Lint fails if the file no longer has the phrase. */
export type Exception = { path: string; phrase: string; reason: string }

export const exceptions: readonly Exception[] = []
