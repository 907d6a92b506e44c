/** Why there is nothing to verify, in words for the visitor. */
export class SubjectFault extends Error {
  override name = 'SubjectFault'
  readonly title: string
  constructor(title: string, message: string) {
    super(message)
    this.title = title
  }
}
