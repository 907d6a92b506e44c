'use client'

import { ServiceProvider } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { config } from './config'

export function Providers({ children }: { children: ReactNode }) {
  return <ServiceProvider config={config}>{children}</ServiceProvider>
}
