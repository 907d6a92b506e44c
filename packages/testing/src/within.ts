/** What a task answers, unless it takes longer than this: then it throws the complaint, and the task is left to itself. */
export async function within<Result>(ms: number, task: Promise<Result>, complaint: string): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(complaint)), ms)
  })
  try {
    return await Promise.race([task, late])
  } finally {
    clearTimeout(timer)
  }
}
