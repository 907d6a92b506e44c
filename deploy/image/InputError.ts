import { MeasureError } from '../measure/MeasureError.ts'

type Code = 'input_missing' | 'input_changed' | 'input_malformed' | 'download_failed'

/** A downloaded file that an image can't be made from. */
export class InputError extends MeasureError {
  override name = 'InputError'
  readonly code: Code
  readonly file: string
  constructor(code: Code, file: string, fault: string) {
    super([`${file}: ${fault}`])
    this.code = code
    this.file = file
  }
}
