import type { ComponentProps } from 'react'

export type ButtonProps = Omit<ComponentProps<'button'>, 'className' | 'aria-disabled'> & {
  look?: 'quiet' | 'small' | 'large'
  /** Set while a task runs. The button keeps the focus, and its handler ignores clicks. */
  isBusy?: boolean
}

export function Button({ look, isBusy, ...rest }: ButtonProps) {
  const className = look === undefined ? 'button' : `button button-${look}`
  return <button type="button" className={className} aria-disabled={isBusy} {...rest} />
}
