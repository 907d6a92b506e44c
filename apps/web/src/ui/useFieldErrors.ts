import { useEffect, useRef, useState } from 'react'

type Errors<Name extends string> = Partial<Record<Name, string>>

/** Error messages of a form's fields. The first field with an error gets the focus once the messages are shown. */
export function useFieldErrors<Name extends string>() {
  const [errors, setErrors] = useState<Errors<Name>>({})
  const form = useRef<HTMLFormElement>(null)
  const wantsFocus = useRef(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: once the messages are on the page
  useEffect(() => {
    if (!wantsFocus.current) return
    wantsFocus.current = false
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid]')
    field?.closest('details')?.setAttribute('open', '')
    field?.focus()
  }, [errors])
  return {
    errors,
    form,
    showErrors(found: Errors<Name>) {
      wantsFocus.current = true
      setErrors(found)
    },
    /** Clears the errors of the changed fields, or all errors. */
    forgetErrors(changed?: object) {
      setErrors((before) =>
        changed === undefined
          ? {}
          : (Object.fromEntries(Object.entries(before).filter(([name]) => !(name in changed))) as Errors<Name>),
      )
    },
  }
}

/** Returns the errors, or undefined if there are none. */
export function findErrors<Name extends string>(
  candidates: Partial<Record<Name, string | undefined>>,
): Errors<Name> | undefined {
  const found = Object.entries(candidates).filter(([, fault]) => fault !== undefined)
  return found.length === 0 ? undefined : (Object.fromEntries(found) as Errors<Name>)
}
