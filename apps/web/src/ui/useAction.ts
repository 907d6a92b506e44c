import type { ServiceError } from '@countersign/sdk'
import { useState } from 'react'
import { toServiceError } from '../words/explainError.ts'

/** Runs one task at a time and keeps the last failure. */
export function useAction() {
  const [isRunning, setIsRunning] = useState(false)
  const [failure, setFailure] = useState<ServiceError | null>(null)

  async function run(task: () => Promise<void>) {
    if (isRunning) return
    setIsRunning(true)
    setFailure(null)
    try {
      await task()
    } catch (error) {
      setFailure(toServiceError(error))
    }
    setIsRunning(false)
  }
  return { run, isRunning, failure }
}
