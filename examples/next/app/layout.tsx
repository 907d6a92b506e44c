import type { ReactNode } from 'react'
import { Providers } from './Providers'

export const metadata = { title: 'Pay with Countersign', icons: 'data:,' }

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>
        <Providers>{children}</Providers>
      </body>
    </html>
  )
}
