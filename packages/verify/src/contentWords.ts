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
