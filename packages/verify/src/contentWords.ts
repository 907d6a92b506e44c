/** One thing that was signed: its name, and its value in printable lines. */
export type Fact = { name: string; value: string }

/** What is or was signed, for a person. Every text is printable. */
export type ContentWords = {
  title: string
  sentence: string
  /** What its holder can do with the signature. */
  warnings: readonly string[]
  facts: readonly Fact[]
}

/** Where content is shown. */
export type Shown = {
  /** The address that signs. */
  wallet: string
  /** The page on which it is about to be signed, and its chain; left out where it was signed before. */
  page?: { host: string; chainId: number }
}
