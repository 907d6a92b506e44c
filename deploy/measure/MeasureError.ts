/** An error that its faults fully explain. Shown without a stack trace. */
export class MeasureError extends Error {
  override name = 'MeasureError'
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}
